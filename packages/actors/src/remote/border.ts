import { type ActorError, badAnswer, badMessage, unknownMessage } from '../errors.js';
import type { Log } from '@bloom/log';
import { LogThrottle } from '@bloom/time';
import type { Cell } from '../cell/cell.js';
import type { Message } from '../envelope.js';
import { isActorRef, RemoteRef } from '../ref.js';
import { type AnyShapes, FAILED, LOCAL, Reading } from '../shape.js';
import type { LocalActorSystem } from '../system.js';
import type { RemoteCounters } from './counters.js';

export interface BorderOptions {
  readonly system: LocalActorSystem;
  /** Name of this node. */
  readonly self: string;
  readonly counters: RemoteCounters;
  readonly log: Log;
  readonly onRefused: (() => void) | undefined;
}

/**
 * Checks everything that other nodes send to actors, and their answers, before an actor sees it. A message without a
 * declared shape, or with another one, is refused, counted, and logged once a minute per sender and kind of receiver.
 */
export class Border {
  readonly #options: BorderOptions;
  readonly #throttle: LogThrottle;

  constructor(options: BorderOptions) {
    this.#options = options;
    this.#throttle = new LogThrottle(options.system.clock);
  }

  /** Returns the message that its receiver may see, or the error for its sender. */
  message(cell: Cell, value: { readonly type: string }, from: string): Message | ActorError {
    const { type } = value;
    const shape = shapeOf(cell.behaviour.shapes as AnyShapes | undefined, type);
    if (shape === undefined) {
      this.refuse(cell, from, `it does not handle ${type.slice(0, 100)}`);
      return unknownMessage(cell.ref, type);
    }
    const reading = this.#reading(from);
    const read = shape.message(value, reading);
    if (read !== FAILED) return read as Message;
    this.refuse(cell, from, `${type}: ${reading.fault}`);

    return badMessage(cell.ref, type, reading.fault);
  }

  /**
   * Returns the answer from an actor on another node.
   * @throws ActorError BAD_ANSWER
   */
  answer(target: RemoteRef, type: string, value: unknown): unknown {
    const shape = shapeOf(target.shapes, type);
    const reading = this.#reading(target.node);
    const read = shape === undefined ? reading.fail('declared') : shape.answer(value, reading);
    if (read !== FAILED) return read;
    this.#report(`answer ${target.node} ${type}`, {
      node: target.node,
      actor: target.path,
      reason: `answer to ${type}: ${reading.fault}`,
    });

    throw badAnswer(target, type, reading.fault);
  }

  /** Counts and reports a message that was refused. */
  refuse(cell: Cell, from: string, reason: string): void {
    this.#report(`${from} ${cell.behaviour.kind}`, { node: from, actor: cell.ref.path, reason });
  }

  #report(key: string, fields: { node: string; actor: string; reason: string }): void {
    const { counters, log, onRefused } = this.#options;
    counters.refused++;
    onRefused?.();
    if (this.#throttle.allows(key)) log.warn('actor.refused', { ...fields, refused: counters.refused });
  }

  #reading(from: string): Reading {
    return new Reading(from, this.#shapesAt);
  }

  readonly #shapesAt = (ref: unknown): AnyShapes | undefined => {
    const { system, self } = this.#options;
    if (!isActorRef(ref)) return undefined;
    const here =
      ref instanceof RemoteRef ? (ref.node === self && typeof ref.to === 'string' ? ref.to : undefined) : ref;
    const cell = here === undefined ? undefined : system.find(here);

    return cell === undefined ? undefined : ((cell.behaviour.shapes ?? NO_SHAPES) as AnyShapes);
  };
}

/** Shapes of an actor that declares none. */
const NO_SHAPES: AnyShapes = {};

function shapeOf(shapes: AnyShapes | undefined, type: string): Exclude<AnyShapes[string], typeof LOCAL> | undefined {
  const shape = shapes !== undefined && Object.hasOwn(shapes, type) ? shapes[type] : undefined;

  return shape === LOCAL ? undefined : shape;
}
