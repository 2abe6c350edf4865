import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import nact from 'nact';
import { NactActor, NactRoot, type Supervised } from './nact-actor.js';

/** Says what nact asked of it. */
class Scripted implements Supervised {
  readonly nact: NactActor<Scripted>;
  drains = 0;
  lives = 0;
  stops = 0;
  /** Thrown by the next drain. */
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

describe('an actor of nact', () => {
  test('drains in a turn of its own, not in the stack of the one that wakes it', async () => {
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

  test('lists the children in the context of a message only when asked', () => {
    const context = parent.nact.createContext(undefined);

    expect(Object.keys(context)).not.toContain('children');
    expect([...context.children.keys()]).toEqual(['1']);
    expect(context).toMatchObject({ name: '0', self: parent.nact.reference });
  });

  test('drops the turn that was asked for when it leaves', async () => {
    parent.nact.wake();
    parent.nact.leave();
    await turn();

    expect(parent.drains).toBe(0);
  });

  test('asks the cell to stop when nact stops it', () => {
    nact.stop(parent.nact.reference as never);

    expect(parent.stops).toBe(1);
    expect(root.childCells).toEqual([parent]);
  });
});

describe('a fault', () => {
  test('is decided by the cell, and `stop` stops it', async () => {
    const fault = new Error('boom');
    parent.fault = fault;
    parent.nact.wake();
    await turn();

    expect(parent.faults).toEqual([fault]);
    expect(parent.stops).toBe(1);
    expect(parent.lives).toBe(0);
    expect(child.stops).toBe(0);
  });

  test('answered with `reset` stops the children, begins a new life and goes on with the next turn', async () => {
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

  test('that no message caused is handled like one', async () => {
    parent.decision = 'reset';
    const fault = new Error('killed');
    parent.nact.fail(fault);
    await turn();

    expect(parent.faults).toEqual([fault]);
    expect(parent.lives).toBe(1);
  });
});
