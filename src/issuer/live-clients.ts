import type { Logger } from '../platform/log/logger.ts';
import { type DirectoryWatchOptions, watchDirectory } from '../platform/mounted/directory-watch.ts';
import { ConfigurationError, describeProblem } from '../platform/problems.ts';
import type { ClientsReading, ReadClients } from './client-sources.ts';
import { type ClientStore, createClientStore } from './clients.ts';
import type { IssuerMetrics } from './metrics.ts';

export interface LiveClients {
  readonly store: ClientStore;
  close(): void;
}

interface LiveClientsOptions extends DirectoryWatchOptions {
  readonly metrics: IssuerMetrics;
  readonly log: Logger;
}

/**
 * Follows a source of clients. A changed source replaces all clients at once or, if anything in it is wrong, none: then
 * the last good ones stay, and every problem is logged.
 * @throws {ConfigurationError} if the source is unusable from the start.
 */
export async function followClients(read: ReadClients, options: LiveClientsOptions): Promise<LiveClients> {
  const { metrics, log } = options;
  const first = await read();
  if ('problems' in first.outcome) throw new ConfigurationError(first.outcome.problems);
  const store = createClientStore(first.outcome.clients);
  announce(first.outcome.clients.size);

  let seen = first.digest;
  const watches = new Map<string, () => void>();
  let reading = false;
  let lookAgain = false;
  let closed = false;

  async function look(): Promise<void> {
    lookAgain = true;
    if (reading) return;
    reading = true;
    while (lookAgain && !closed) {
      lookAgain = false;
      apply(await read());
    }
    reading = false;
  }

  function apply(next: ClientsReading): void {
    if (closed) return;
    watchOnly(next.directories);
    if (next.digest === seen) return;
    seen = next.digest;
    if ('problems' in next.outcome) {
      metrics.reloaded('clients', 'failure');
      const problems = next.outcome.problems.map(describeProblem);
      log.error({ problems, clients: store.current().size }, 'clients not reloaded, the last good ones stay');
      return;
    }
    store.replace(next.outcome.clients);
    metrics.reloaded('clients', 'success');
    announce(next.outcome.clients.size);
  }

  function announce(size: number): void {
    metrics.clients(size);
    if (size === 0) log.warn({ clients: 0 }, 'no client is registered: every token request will be refused');
    else log.info({ clients: size }, 'clients loaded');
  }

  function watchOnly(directories: readonly string[]): void {
    for (const [directory, unwatch] of watches) {
      if (directories.includes(directory)) continue;
      unwatch();
      watches.delete(directory);
    }
    for (const directory of directories) {
      if (watches.has(directory)) continue;
      watches.set(
        directory,
        watchDirectory(directory, options, () => void look()),
      );
      // A change before the watch began would otherwise wait for the poll.
      lookAgain = true;
    }
  }

  watchOnly(first.directories);
  await look();
  return {
    store,
    close() {
      closed = true;
      for (const unwatch of watches.values()) unwatch();
      watches.clear();
    },
  };
}
