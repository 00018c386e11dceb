"""The exact code of a trial: taken in milliseconds with git, given back byte for byte."""
