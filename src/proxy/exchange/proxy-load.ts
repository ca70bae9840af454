/** What the proxy has in flight, and whether it takes more. */
export interface ProxyLoad {
  /** Requests, over all connections. */
  inFlight: number;
  phase: LoadPhase;
}

/**
 * From the proxy's start to its end.
 * - `leaving`: requests are served as before, and clients should close their connections.
 * - `finishing`: no new requests are taken, and those in flight go on.
 * - `cutting`: their time is up.
 */
type LoadPhase = 'serving' | 'leaving' | 'finishing' | 'cutting';

/** Whether no new requests are taken. */
export function isDraining({ phase }: Pick<ProxyLoad, 'phase'>): boolean {
  return phase === 'finishing' || phase === 'cutting';
}
