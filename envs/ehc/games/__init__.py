"""Board games against an opponent whose action in every state is fixed."""
