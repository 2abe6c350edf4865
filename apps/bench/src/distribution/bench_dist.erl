%% The Erlang side of `npm run bench:dist`.
-module(bench_dist).
-export([start/0, rtt/2, oneway/3, encode/2, decode/2, full/1, term100/0, kib/0, await_down/1]).

start() ->
    register(echo, spawn(fun echo/0)),
    register(sink, spawn(fun() -> sink(0) end)),
    ok.

echo() ->
    receive
        {'$gen_call', From, Request} -> gen_server:reply(From, Request);
        _ -> ok
    end,
    echo().

sink(N) ->
    receive
        {done, From} -> From ! N, sink(0);
        _ -> sink(N + 1)
    end.

term100() ->
    {room_event, 123456, <<"participant-00112233445566778899">>, #{id => 7, x => 1.5, kind => <<"audio">>, on => true}}.

kib() -> binary:copy(<<255>>, 1024).

%% {p50, p99} in microseconds.
rtt(Node, N) ->
    Term = term100(),
    Times = lists:sort([one(Node, Term) || _ <- lists:seq(1, N)]),
    {lists:nth(max(1, N div 2), Times) / 1000, lists:nth(max(1, N * 99 div 100), Times) / 1000}.

one(Node, Term) ->
    T0 = erlang:monotonic_time(nanosecond),
    Term = gen_server:call({echo, Node}, Term),
    erlang:monotonic_time(nanosecond) - T0.

%% Messages per second.
oneway(Node, Term, N) ->
    T0 = erlang:monotonic_time(nanosecond),
    send({sink, Node}, Term, N),
    {sink, Node} ! {done, self()},
    receive N -> N * 1.0e9 / (erlang:monotonic_time(nanosecond) - T0) end.

send(_, _, 0) -> ok;
send(To, Term, N) -> To ! Term, send(To, Term, N - 1).

%% Operations per second.
encode(Bin, N) ->
    Term = binary_to_term(Bin),
    rate(fun() -> term_to_binary(Term) end, N).

decode(Bin, N) -> rate(fun() -> binary_to_term(Bin) end, N).

rate(F, N) ->
    T0 = erlang:monotonic_time(nanosecond),
    loop(F, N),
    N * 1.0e9 / (erlang:monotonic_time(nanosecond) - T0).

loop(_, 0) -> ok;
loop(F, N) -> F(), loop(F, N - 1).

full(N) ->
    case length(nodes()) of
        N -> ok;
        _ -> timer:sleep(2), full(N)
    end.

%% Wall clock in microseconds at which the node was reported down.
await_down(Node) ->
    receive {nodedown, Node} -> erlang:system_time(microsecond) after 10000 -> timeout end.
