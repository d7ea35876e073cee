#!/bin/sh
# SPDX-License-Identifier: MIT
#
# gen_big_elf.sh OUT [COPIES] - a shared object of 100 MB and more with full DWARF, in a minute.
#
# A few C++ units made of standard library templates are compiled once; each object is then
# copied with all its symbols renamed, so that the linker keeps every copy as a unit of its own.
# The result is for reading only: its undefined symbols (renamed too) exist nowhere.
set -eu

out=$1
copies=${2:-20}
cxx=${CXX:-g++}
flags=${BIG_CXXFLAGS:--O2 -g}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

unit() {
	n=$1
	cat <<-UNIT
	#include <algorithm>
	#include <functional>
	#include <map>
	#include <memory>
	#include <regex>
	#include <set>
	#include <string>
	#include <unordered_map>
	#include <vector>
	namespace unit$n {
	template <int N> struct key {
		std::string text; int number;
		bool operator<(const key &o) const { return text < o.text || number + N < o.number; }
	};
	template <int N> struct store {
		std::map<key<N>, std::vector<std::shared_ptr<key<N + 1>>>> by_key;
		std::unordered_map<std::string, std::set<long>> by_name;
		std::vector<std::function<int(int)>> hooks;
		int add(const std::string &s, int v) {
			auto &list = by_key[key<N>{ s, v }];
			list.push_back(std::make_shared<key<N + 1>>(key<N + 1>{ s + "x", v * $n }));
			by_name[s].insert(v);
			hooks.push_back([this, v](int x) { return x * v + (int)by_key.size(); });
			std::sort(list.begin(), list.end(),
				  [](const auto &a, const auto &b) { return *a < *b; });
			return std::accumulate_hooks(hooks, v);
		}
		bool match(const std::string &s) {
			std::regex re("(a|b)*c[0-9]+");
			return std::regex_match(s, re);
		}
	};
	}
	int entry$n(const std::string &s, int v) {
		unit$n::store<$n> a; unit$n::store<$n + 100> b; unit$n::store<$n + 200> c;
		unit$n::store<$n + 300> d; unit$n::store<$n + 400> e; unit$n::store<$n + 500> f;
		return a.add(s, v) + b.add(s, v) + c.add(s, v) + d.add(s, v) + e.add(s, v) +
		       f.add(s, v) + a.match(s);
	}
	UNIT
}

for n in 1 2 3; do
	unit "$n" | sed 's/std::accumulate_hooks(hooks, v)/(int)hooks.size() + hooks[0](v)/' \
		>"$dir/u$n.cc"
	"$cxx" $flags -fPIC -std=c++17 -c -o "$dir/u$n.o" "$dir/u$n.cc"
	i=0
	while [ "$i" -lt "$copies" ]; do
		objcopy --prefix-symbols="c${i}_" "$dir/u$n.o" "$dir/c$i.u$n.o"
		i=$((i + 1))
	done
done
"$cxx" -shared -nostdlib -Wl,--build-id -Wl,-z,notext -o "$out" "$dir"/c*.o
