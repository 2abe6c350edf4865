/** Recorded messages of one kind that a handler sends in a row. */
const RECORDED = 8;

/**
 * Decides which of the messages that a handler sends are recorded as steps of its request. A room that tells everybody
 * of a newcomer would otherwise displace other requests from the record; of such messages the first few are recorded,
 * with what they cause, and the others counted.
 */
export class FanOut {
  /** Number of messages left out since the handler began. */
  omitted = 0;
  /** Whether the handler's own message is left out, and with it all that it causes. */
  isOmitted = false;
  #type: string | undefined;
  #inARow = 0;

  /** Begins a handler of a message that is left out or not. */
  begin(isOmitted: boolean): void {
    this.isOmitted = isOmitted;
    this.#type = undefined;
    this.omitted = 0;
  }

  /** Returns whether the next message, of this type, is left out. */
  omits(type: string): boolean {
    if (this.isOmitted) return true;
    this.#inARow = type === this.#type ? this.#inARow + 1 : 1;
    this.#type = type;
    if (this.#inARow <= RECORDED) return false;
    this.omitted++;

    return true;
  }
}
