/** Connections and flows through a cell, as programs see them; without Node's types, which browsers do not have. */

/** A TCP connection. In Node it is a Duplex stream, and can be given to whatever takes one (`socket as Duplex`). */
export interface LeaseSocket extends AsyncIterable<Uint8Array> {
  readonly destroyed: boolean;
  /** False: wait for "drain" before writing more. */
  write(data: Uint8Array | string): boolean;
  /** Nothing more is sent after this; what still comes can be read. */
  end(data?: Uint8Array | string): unknown;
  destroy(error?: Error): unknown;
  pause(): unknown;
  resume(): unknown;
  on(event: "data", listener: (data: Uint8Array) => void): unknown;
  /** A LeaseLost when the lease has ended; renewals do not touch the connection. */
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end" | "close" | "drain", listener: () => void): unknown;
}

/**
 * A flow of datagrams. `for await` gives them as they come, to one reader; it throws the LeaseLost when the lease is lost,
 * and ends after `close()`. Those that nobody reads are dropped, the oldest first.
 */
export interface LeaseDatagrams extends AsyncIterable<Uint8Array> {
  /** Resolves when the system has taken it. Nobody says whether it arrives. */
  send(datagram: Uint8Array | string): Promise<void>;
  close(): Promise<void>;
}
