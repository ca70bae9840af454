/** Watches a directory, in a process of its own, and prints the mode if it is not by notification. */

import { watchDirectory } from '../../../src/platform/mounted/directory-watch.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';

const onMode = (mode: object) => process.stdout.write(JSON.stringify(mode));
const end = watchDirectory(process.argv[2] as string, { clock: systemClock, pollMs: 1000, onMode }, () => {});
end();
