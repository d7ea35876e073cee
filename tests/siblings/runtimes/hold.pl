# Perl: strings by malloc
use strict; $| = 1; my @keep; print "READY\n"; <STDIN>;
push @keep, ('x' x 2000) . $_ for 1 .. 10000;
print 'EXPECT ', 10000 * 2000, "\nDONE\n"; <STDIN>;
