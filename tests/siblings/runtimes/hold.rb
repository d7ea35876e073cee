# small objects, in Ruby's own pages
$stdout.sync = true
require 'objspace'
puts 'READY'
gets
keep = Array.new(300_000) { |i| [i, i + 1, i + 2] }
puts "EXPECT #{keep.sum { |o| ObjectSpace.memsize_of(o) }}"
puts 'DONE'
gets
