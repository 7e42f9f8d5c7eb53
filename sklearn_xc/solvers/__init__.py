"""Optimisers: each reads a frozen problem, moves a workspace, leaves its best point, a status."""
