"""The ways in which a program is started: a Python script or module, a shell script, torchrun."""
