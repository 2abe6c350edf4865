export { TestWires } from './wires.js';
