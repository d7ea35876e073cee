<?php // holds 25 MB of strings
$keep = []; echo "READY\n"; fgets(STDIN);
for ($i = 0; $i < 10000; $i++) $keep[] = str_repeat(chr(65 + $i % 26), 2500);
echo "EXPECT ", 10000 * 2500, "\nDONE\n"; fgets(STDIN);
