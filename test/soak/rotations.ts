import { once } from 'node:events';
import type { Change } from './evenly.ts';
import type { ProtectedApi } from './protected-api.ts';
import type { Provider } from './provider.ts';

/** Another client secret, from the swap of the Secret to the first request with a token for it. */
export function rotating(provider: Provider, api: ProtectedApi): Change {
  return {
    make: (number) => provider.rotateTo(number),
    taken: (number, over) =>
      Promise.race([api.seenFrom(number).then(() => true), aborted(over).then(() => false)]),
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
