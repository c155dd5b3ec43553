"""What drives a run and takes it elsewhere: transport, recording, warm start, sharing."""
