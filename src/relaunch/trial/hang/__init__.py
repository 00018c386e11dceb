"""Is it hung: certainly, perhaps, or does it wait for somebody who is not of the program?"""
