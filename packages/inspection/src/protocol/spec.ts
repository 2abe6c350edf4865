import type { z } from 'zod';

interface Spec {
  /** Fields of the request; defaults are filled in by the node. */
  readonly request: z.ZodType;
  /** The field that names an actor or a room. Sent without a node, the request goes to the member where that one lives. */
  readonly locate?: { readonly actor: string } | { readonly room: string };
}

/** A request with one answer. */
export interface RequestSpec extends Spec {
  readonly answer: z.ZodType;
  /** Injects a fault or changes the log level: refused with `JF_INSPECTION=read`. */
  readonly changes?: true;
}

/** A request with many answers, pushed to the subscriber until a limit, a time or a closed link ends them. */
export interface StreamSpec extends Spec {
  readonly item: z.ZodType;
}
