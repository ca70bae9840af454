import type { ListenAddress } from '../../src/platform/net/address.ts';
import type { SoakConfiguration } from './configuration.ts';
import type { Change } from './evenly.ts';
import { pause } from './pause.ts';
import { readGeneration } from './sidecar-figures.ts';

const LOOK_MS = 20;

/** Another configuration, from the swap of the file until it is in use. */
export function reloading(configuration: SoakConfiguration, admin: ListenAddress): Change {
  return {
    make: (number) => configuration.changeTo(number),
    async taken(number, over) {
      while (!over.aborted) {
        if ((await readGeneration(admin)) === number + 1) return true;
        await pause(LOOK_MS, over);
      }
      return false;
    },
  };
}
