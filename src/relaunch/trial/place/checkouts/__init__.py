"""Work trees of ours in which commits of the user are tried; the user's repository is only read."""
