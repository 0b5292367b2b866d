"""Results for people and programs: tables, CSV, progress."""
