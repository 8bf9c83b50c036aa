"""Tests of the agent. One package, so that its engines are started once and end with it."""
