export { Erlang, hasErlang, hasErlCall, run } from './erlang.js';
export { TestWires } from './wires.js';
