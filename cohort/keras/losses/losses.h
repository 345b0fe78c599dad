// All losses.
#pragma once

#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/mean_squared_error.h"
