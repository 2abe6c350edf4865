import type { z } from 'zod';

interface Spec {
  /** Fields of the request; the node fills in defaults. */
  readonly request: z.ZodType;
  /**
   * The field that names an actor or a room. Without a node, the request goes to the member that has it. For that all
   * members are asked, or with `owner` the directory of rooms, which also knows owners that do not answer.
   */
  readonly locate?: { readonly actor: string } | { readonly room: string } | { readonly owner: string };
}

/** A request with one answer. */
export interface RequestSpec extends Spec {
  readonly answer: z.ZodType;
  /** True when the request injects a fault or changes the log level, which `JF_INSPECTION=read` refuses. */
  readonly changes?: true;
}

/** A request with many answers, pushed to the subscriber until a limit, a time or a closed link ends them. */
export interface StreamSpec extends Spec {
  readonly item: z.ZodType;
}
