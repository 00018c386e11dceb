"""What the files of a revision say it needs: one module for each kind of file."""
