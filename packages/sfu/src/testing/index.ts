export { describeEngineContract } from './engine-contract.js';
