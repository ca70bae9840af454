import type { Problem } from '../config/problems.ts';
import type { ClientSet } from './client-store.ts';

/** What a source of clients was found to hold: all of them, or everything that is wrong. */
export interface ClientsReading {
  readonly outcome: { readonly clients: ClientSet } | { readonly problems: readonly Problem[] };
  /** The same when nothing has changed, without telling what it is a digest of. */
  readonly digest: string;
  /** Directories to watch: what changes in them may change the reading. */
  readonly directories: readonly string[];
}

/** Reads a source anew. Never rejects. */
export type ReadClients = () => Promise<ClientsReading>;
