/**
 * The messages of an actor, as a map from message type to a function from the message's fields to the reply.
 *
 * ```ts
 * type Counter = {
 *   add: (message: { by: number }) => void;
 *   read: (message: object) => number;
 * };
 * await system.call(counter, { type: 'read' }); // number
 * ```
 *
 * Messages and replies that may cross to another node are plain data: no functions, no class instances.
 */
export type Protocol = Record<string, (message: never) => unknown>;

type Fields<F> = F extends (message: infer M) => unknown ? M : never;

export type MessageOf<P extends Protocol, K extends keyof P = keyof P> = {
  [T in keyof P & string]: { readonly type: T } & Readonly<Fields<P[T]>>;
}[K & string];

export type ReplyOf<P extends Protocol, K extends keyof P> = ReturnType<P[K]>;
