/** One TCP connection of a relay client as seen by the port: whole frames in, whole frames out. */
export interface RelayStream {
  /** Takes one STUN message or ChannelData frame as received from the stream, without its padding. */
  receive(frame: Buffer): void;
  /** Called when the connection has closed. */
  closed(): void;
}

export interface RelayStreamOptions {
  address: string;
  port: number;
  /** True inside TLS. */
  secure: boolean;
  /** Writes one frame. Returns false if the frame was dropped because the connection is too far behind. */
  send(frame: Buffer): boolean;
  /** Called when the client has an allocation, which proves that it knows the user's password. */
  allocated(): void;
  /** Closes the connection. */
  close(): void;
}

/** Serves the connections of one relay user: a media port, or a proxy that passes frames to its thread. */
export interface RelayRoute {
  attachStream(options: RelayStreamOptions): RelayStream;
}
