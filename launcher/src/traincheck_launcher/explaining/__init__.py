"""`--explain`: what would be done."""
