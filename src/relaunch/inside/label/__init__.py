"""The texts of the arguments of a call that is being made, from its source or its bytecode."""
