/** Longer chains of ticks and promises go on in a later phase. */
const TICK_ROUNDS = 4;

/** Lets ticks and promises run, and those that they cause, within the phase. */
export async function ticks(): Promise<void> {
  for (let round = 0; round < TICK_ROUNDS; round++)
    await new Promise<void>((resolve) => process.nextTick(resolve));
}
