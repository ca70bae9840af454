import type { NamedAddress, ReadFile } from './address-conflicts.ts';

/**
 * Runs a function that listens at these addresses.
 * @throws its error; or {ConfigurationError} naming each address that another program holds, if that is the cause.
 */
export async function explainingConflicts<Result>(
  run: () => Promise<Result>,
  addresses: readonly NamedAddress[],
  file?: ReadFile,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    // Loaded only after a failure.
    const { explainConflicts } = await import('./address-conflicts.ts');
    await explainConflicts(error, addresses, file);
    throw error;
  }
}
