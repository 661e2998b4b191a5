import winston from 'winston';

export type Log = winston.Logger;

/**
 * Creates the log of the process: one JSON object per line on standard output, with an ISO 8601 timestamp. Never log an
 * API key (its public id is fine), a user id or a body.
 */
export function createLog(level: string): Log {
  return winston.createLogger({
    level,
    format: winston.format.combine(
      winston.format.timestamp(),
      winston.format.errors({ stack: true }),
      winston.format.json(),
    ),
    transports: [new winston.transports.Console({ stderrLevels: [] })],
  });
}
