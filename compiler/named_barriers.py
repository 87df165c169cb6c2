"""Who uses which of a CTA's sixteen barriers."""

#: That of all its threads.
ALL = 0
#: One for each role of a specialized kernel, from here on.
ROLES = 1
#: One for each consumer warpgroup that takes turns with others; at most 4 do.
TURNS = 4
