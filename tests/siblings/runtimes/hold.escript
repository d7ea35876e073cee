#!/usr/bin/env escript
%% data of a process, in Erlang's own carriers
main(_) ->
    io:format("READY~n"), io:get_line(""),
    Keep = [lists:seq(I, I + 100) || I <- lists:seq(1, 10000)],
    io:format("EXPECT ~w~nDONE~n", [length(Keep) * 101 * 16]), io:get_line(""),
    io:format("~w~n", [length(Keep)]).
