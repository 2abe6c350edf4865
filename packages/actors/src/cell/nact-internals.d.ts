/** The class behind nact's references, missing from its index; nact's `spawnPersistent` extends it as we do. */
declare module 'nact/lib/actor.js' {
  export interface ActorSystem<Child extends Actor = Actor> {
    readonly name: string;
    readonly reference: unknown;
    readonly children: ReadonlyMap<string, Child>;
    /** Refuses new children. */
    stop(): void;
  }

  export interface CrashContext {
    readonly stop: symbol;
    readonly reset: symbol;
  }

  export interface ActorProperties {
    onCrash?: (message: unknown, error: unknown, context: CrashContext, child: unknown) => symbol;
  }

  export class Actor {
    readonly system: ActorSystem;
    /** Undefined after `stop`. */
    readonly parent: Actor | ActorSystem | undefined;
    readonly path: unknown;
    readonly reference: unknown;
    readonly name: string;
    readonly log: unknown;
    readonly stopped: boolean;
    readonly children: ReadonlyMap<string, this>;
    readonly childReferences: ReadonlyMap<string, unknown>;
    /** Creates the first state, and a new one for each `reset`. */
    initialStateFunc: (() => unknown) | undefined;
    constructor(
      parent: Actor | ActorSystem,
      name: string,
      system: ActorSystem,
      run: () => void | Promise<void>,
      properties: ActorProperties,
    );
    createContext(sender: unknown): object;
    dispatch(message: unknown, sender: unknown): void;
    handleFault(message: unknown, sender: unknown, error: unknown): Promise<void>;
    stop(): void;
  }
}

/** All systems of the process, by name. */
declare module 'nact/lib/system-map.js' {
  const systems: { remove(name: string): void };
  export default systems;
}
