// SPDX-License-Identifier: MIT
/*
 * classes.cc - objects of C++ classes of which all is known: classes HOW. It prints READY, and ends with its input.
 *
 *	held	20,000 of shop::Session, 30,000 of shop::Order, 10,000 of a class without virtual functions
 *	pins	20,000 of shop::Session, each with 4000 free bytes behind it
 *	grow	what is held, and then 100 of shop::Order in each hundredth of a second
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace shop {
struct Base {
	virtual ~Base() = default;
	virtual int price() const { return 1; }
};
struct Session : Base {
	char state[40];
	int price() const override { return 2; }
};
template <typename T> struct Order : Base {
	T lines[20];
	int price() const override { return 3; }
};
struct Plain {
	long a[5];
};
} // namespace shop

namespace {
struct Local : shop::Base { // of this file alone
	char data[100];
	int price() const override { return 4; }
};
std::vector<std::unique_ptr<shop::Base>> kept;
std::vector<std::unique_ptr<shop::Plain>> plain;

template <typename T> void keep(int cnt)
{
	for (int i = 0; i < cnt; i++)
		kept.push_back(std::make_unique<T>());
}

void hold()
{
	kept.reserve(1 << 20);
	keep<shop::Session>(20000);
	keep<shop::Order<int>>(30000);
	keep<Local>(5000);
	for (int i = 0; i < 10000; i++)
		plain.push_back(std::make_unique<shop::Plain>());
}

void pin()
{
	std::vector<void *> freed;

	kept.reserve(20000);
	freed.reserve(20000);
	for (int i = 0; i < 20000; i++) {
		kept.push_back(std::make_unique<shop::Session>());
		freed.push_back(std::malloc(4000));
		std::memset(freed.back(), 1, 4000);
	}
	for (void *p : freed)
		std::free(p);
}

void grow()
{
	hold();
	std::thread([] {
		for (;;) {
			keep<shop::Order<int>>(100);
			usleep(10000);
		}
	}).detach();
}
} // namespace

int main(int argc, char **argv)
{
	int sum = 0;
	const char *how = argc > 1 ? argv[1] : "held";

	if (!std::strcmp(how, "pins"))
		pin();
	else if (!std::strcmp(how, "grow"))
		grow();
	else
		hold();
	for (size_t i = 0; i < 20000; i++)
		sum += kept[i]->price();
	std::printf("READY %d\n", sum);
	std::fflush(stdout);
	std::getchar();
	std::_Exit(0);
}
