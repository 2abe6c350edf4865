import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { NactActor, NactRoot, type Supervised } from './nact-actor.js';

/** Records what nact requests of it. */
class Scripted implements Supervised {
  readonly nact: NactActor<Scripted>;
  drains = 0;
  lives = 0;
  stops = 0;
  /** Error thrown by the next drain. */
  fault: Error | undefined;
  readonly faults: unknown[] = [];
  decision: 'stop' | 'reset' = 'stop';

  constructor(parent: NactActor<Scripted> | NactRoot<Scripted>, name: string) {
    this.nact = new NactActor<Scripted>(parent instanceof NactRoot ? parent.system : parent, name, this);
  }

  drain(): void {
    this.drains++;
    const { fault } = this;
    this.fault = undefined;
    if (fault !== undefined) throw fault;
  }

  crashed(error: unknown): 'stop' | 'reset' {
    this.faults.push(error);
    return this.decision;
  }

  restart(): void {
    this.lives++;
  }

  stop(): Promise<void> {
    this.stops++;
    return Promise.resolve();
  }
}

let root: NactRoot<Scripted>;
let parent: Scripted;
let child: Scripted;

beforeEach(() => {
  root = new NactRoot<Scripted>();
  parent = new Scripted(root, '0');
  child = new Scripted(parent.nact, '1');
});
afterEach(() => root.close());

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('nact actor', () => {
  test('drains in a separate turn of the event loop, not on the stack of its waker', async () => {
    parent.nact.wake();
    expect(parent.drains).toBe(0);
    await turn();

    expect(parent.drains).toBe(1);
  });

  test('knows its parent and the children that have not left', () => {
    const other = new Scripted(parent.nact, '2');
    expect(parent.nact.childCells).toEqual([child, other]);
    expect(child.nact.parentCell).toBe(parent);
    expect(root.childCells).toEqual([parent]);
    child.nact.leave();

    expect(parent.nact.childCells).toEqual([other]);
  });

  test('lists the children in a message context only when asked', () => {
    const context = parent.nact.createContext(undefined);

    expect(Object.keys(context)).not.toContain('children');
    expect([...context.children.keys()]).toEqual(['1']);
    expect(context).toMatchObject({ name: '0', self: parent.nact.reference });
  });

  test('drops a requested turn when it leaves', async () => {
    parent.nact.wake();
    parent.nact.leave();
    await turn();

    expect(parent.drains).toBe(0);
  });

  test('asks the cell to stop when nact stops it', () => {
    parent.nact.stop();

    expect(parent.stops).toBe(1);
    expect(root.childCells).toEqual([parent]);
  });
});

describe('fault in a nact actor', () => {
  test('lets the cell decide on a fault, and `stop` stops it', async () => {
    const fault = new Error('boom');
    parent.fault = fault;
    parent.nact.wake();
    await turn();

    expect(parent.faults).toEqual([fault]);
    expect(parent.stops).toBe(1);
    expect(parent.lives).toBe(0);
    expect(child.stops).toBe(0);
  });

  test('stops the children, restarts and continues with the next turn after `reset`', async () => {
    parent.decision = 'reset';
    parent.fault = new Error('boom');
    parent.nact.wake();
    parent.nact.wake();
    await turn();
    expect(child.stops).toBe(1);
    expect(parent.lives).toBe(1);
    expect(parent.stops).toBe(0);
    await turn();

    expect(parent.drains).toBe(2);
  });

  test('handles a fault that no message caused like any other', async () => {
    parent.decision = 'reset';
    const fault = new Error('killed');
    parent.nact.fail(fault);
    await turn();

    expect(parent.faults).toEqual([fault]);
    expect(parent.lives).toBe(1);
  });
});
