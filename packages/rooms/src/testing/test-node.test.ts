import { describeEngineContract } from '@bloom/sfu/testing';
import { TestMedia } from './test-node.js';

describeEngineContract("the stand-in of the rooms' tests", async () => new TestMedia());
