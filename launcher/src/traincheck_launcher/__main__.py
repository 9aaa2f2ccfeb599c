"""`python -m traincheck_launcher` is `traincheck-collect`."""

from traincheck_launcher.commands.collect import main

if __name__ == "__main__":
    main()
