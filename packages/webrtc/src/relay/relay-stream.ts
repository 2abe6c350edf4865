/** One TCP connection of a relay client, seen from the port: whole frames in, whole frames out. */
export interface RelayStream {
  /** Takes one STUN message or ChannelData frame as it stood on the stream, without the padding. */
  receive(frame: Buffer): void;
  /** Reports that the connection is gone. */
  closed(): void;
}

export interface RelayStreamOptions {
  address: string;
  port: number;
  /** Writes one frame. Returns false when the connection is so far behind that the frame was dropped. */
  send(frame: Buffer): boolean;
  /** The client has an allocation: it knows the password of its user. */
  allocated(): void;
  /** Ends the connection. */
  close(): void;
}

/** Serves the connections of one relay user: a media port, or a stand-in that passes frames to its thread. */
export interface RelayRoute {
  attachStream(options: RelayStreamOptions): RelayStream;
}
