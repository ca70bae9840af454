import type { NamedAddress, ReadFile } from '../address-conflicts.ts';

/**
 * Runs what listens at these addresses.
 * @throws what it throws; {ConfigurationError} that names each address another program has, where that is why.
 */
export async function explainingConflicts<Result>(
  run: () => Promise<Result>,
  addresses: readonly NamedAddress[],
  file?: ReadFile,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    // Loaded where something has gone wrong.
    const { explainConflicts } = await import('../address-conflicts.ts');
    await explainConflicts(error, addresses, file);
    throw error;
  }
}
