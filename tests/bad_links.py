"""Links that ask for what cannot be, and the sentence that each gets: read by the tests and printed by them.

Each row: what stands after the question mark, and the beginning of the first sentence.
"""

from __future__ import annotations

BAD_LINKS: list[tuple[str, str]] = [
    # names
    ("target=moon", "The link names a target 'moon', which is not one of"),
    ("target=banana&sampler=magic", "The link names a sampler 'magic', which is not one of"),
    ("target=<script>alert(1)</script>", "The link names a target '<script>alert(1)</script>', which is not one of"),
    ("target=banana&colour=red", "A link has no parameter 'colour'; it was left out."),
    ("target=banana&t.size=3", "Banana has no setting 'size'; it was left out."),
    ("target=banana&sampler=bps&s.gamma=3", "Bouncy Particle has no setting 'gamma'; it was left out."),
    ("target=banana&sampler=boomerang&s.=3", "Boomerang has no setting ''; it was left out."),
    ("target=banana&attachment=gASVBQ", "A link has no parameter 'attachment'; it was left out."),
    ("target=banana&=1", "A link has no parameter ''; it was left out."),
    # numbers out of range
    ("target=banana&s.refresh_rate=50", "refresh_rate = 50 is out of range; 20 was used."),
    ("target=banana&s.refresh_rate=-1", "refresh_rate = -1 is out of range; 0 was used."),
    ("target=banana&s.refresh_rate=1e999", "refresh_rate = inf is out of range; 20 was used."),
    ("target=banana&seed=99999999999", "seed = 99999999999 is out of range; 2147483647 was used."),
    ("target=banana&chains=0", "chains = 0 is out of range; 1 was used."),
    # what cannot be read
    ("target=banana&s.refresh_rate=fast", "refresh_rate = 'fast' is not a finite number; 1 was used."),
    ("target=banana&s.refresh_rate=nan", "refresh_rate = 'nan' is not a finite number; 1 was used."),
    ("target=banana&s.refresh_rate=none", "refresh_rate = 'none' is not a finite number; 1 was used."),
    ("target=banana&s.horizon=soon", "horizon = 'soon' is not a finite number; the automatic value was used."),
    ("target=gaussian&t.size=2.5", "size = '2.5' is not an integer; 2 was used."),
    ("target=banana&chains=four", "chains = 'four' is not an integer; 4 was used."),
    ("target=banana&seed=%00", "seed = ' ' is not an integer; 0 was used."),
    (
        "target=banana&s.bound=loose",
        "bound = 'loose' is not one of grid, interpolated, regression, exact; grid was used.",
    ),
    ("target=banana&s.clip_points=maybe", "clip_points = 'maybe' is neither true nor false; false was used."),
    ("target=banana&device=cuda:0;rm%20-rf", "device = 'cuda:0;rm -rf' is not auto, cpu or cuda:N; auto was used."),
    ("target=network&t.data=mnist8", "data = 'mnist8' is not one of"),
    ("target=network&t.hidden=" + "9-" * 150, "hidden = '9-9-9-9-9-9-9-9-9-9-9-9-9-9-9-9-9-9-9...' is too long"),
    ("target=gaussian&t.mean_list=" + "1," * 150, "mean_list = '1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1...' is too long"),
    # more than a page can hold
    ("target=banana&chains=4096", "chains = 4096 is more than the limit of a link (64); 64 was used."),
    ("target=banana&draws=1000000", "draws = 1000000 is more than the limit of a link (100000); 100000 was used."),
    (
        "target=gaussian&t.size=2000&chains=64",
        "chains = 64 in 2,000 dimensions exceeds the limit of a link; 50 was used.",
    ),
    (
        "target=gaussian&t.size=100&chains=10&draws=100000",
        "draws = 100000 of 10 chains in 100 dimensions exceeds the limit of a link; 50000 was used.",
    ),
    ("target=network&t.hidden=5000-5000", "The link requests 25,020,001 dimensions, more than the limit of 100,000"),
    ("target=banana&seed=" + "1" * 9000, "The link is longer than 8 kB and was not read"),
    # said twice
    ("target=banana&seed=1&seed=2", "The link has 'seed' 2 times; the first was used."),
    ("target=banana&target=gaussian", "The link has 'target' 2 times; the first was used."),
]
