"""How loops are compiled, where compiled code is kept, and what users hear of it."""
