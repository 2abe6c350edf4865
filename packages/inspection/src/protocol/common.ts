import { z } from 'zod';

/** Milliseconds since the epoch. */
export const at = z.number();
/** Duration in milliseconds. */
export const ms = z.number();
export const count = z.number().int().min(0);
export const nodeName = z.string().min(3).max(255);

/** Path of an actor (`rooms/kitchen/peers/ann`, leading slash optional), its key, or a registered name. */
export const actorId = z.string().min(1).max(1_024);
export const roomId = z.string().min(1).max(1_024);
/** Each `*` matches any text, slashes included. */
export const pattern = z.string().min(1).max(1_024);

/** Maximum number of lines. */
export const limit = z.number().int().min(1).max(1_000).default(50);
/** Maximum depth and size of a shown payload or state. */
export const cut = {
  depth: z.number().int().min(1).max(10).default(3),
  bytes: z.number().int().min(16).max(65_536).default(512),
};

/** Lifetime of a change before the node undoes it; at most an hour. */
export const lasting = z.number().int().min(100).max(3_600_000);

/** Plain JSON, redacted and cut. */
export const json: z.ZodType<unknown> = z.unknown();

export const logLevel = z.enum(['debug', 'info', 'warning', 'error']);

/** A rate, or null when only one sample was taken. */
export const rate = z.number().nullable();

/** Members that did not answer, with the reasons. */
export const unreachable = z.array(z.object({ name: nodeName, reason: z.string() }));
