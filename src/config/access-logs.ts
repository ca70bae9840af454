/** Which requests leave a line in the log. */
export const ACCESS_LOGS = ['off', 'errors', 'all'] as const;
