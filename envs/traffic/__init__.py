"""Signalised intersections, simulated by SUMO: a family of MDPs from the real world (the extra `traffic`)."""
