import type { Problem } from '../platform/problems.ts';
import type { ClientSet } from './client-store.ts';

/** A source's clients, or everything that is wrong with it. */
export interface ClientsReading {
  readonly outcome: { readonly clients: ClientSet } | { readonly problems: readonly Problem[] };
  /** Equal if nothing has changed; reveals nothing of its content. */
  readonly digest: string;
  /** Directories to watch: a change in them may change the reading. */
  readonly directories: readonly string[];
}

/** Reads a source anew. Never rejects. */
export type ReadClients = () => Promise<ClientsReading>;
