"""How each kind of value looks on one line; `relaunch.inside.shown` chooses among them."""
