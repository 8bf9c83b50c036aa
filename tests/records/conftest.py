"""Tests of records: they use the services and the clients of tests/http."""
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "http"))
